from sfumato.deploy.any_table import report as report
from sfumato.deploy.bundle import load_bundle as load_bundle
from sfumato.deploy.release import Release as Release
