from sfumato.data.grid import Region as Region
from sfumato.data.joint import Joint as Joint
