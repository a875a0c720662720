from sfumato.deploy.bundle import load_bundle as load_bundle
from sfumato.deploy.release import Release as Release
from sfumato.deploy.table import report as report
