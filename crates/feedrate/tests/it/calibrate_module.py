"""Imports src/command/calibrate.py as a module, with a stub in the place of torch."""

import importlib.util
import sys
import types
from pathlib import Path

data = types.ModuleType("torch.utils.data")
for name in ("DataLoader", "Dataset", "IterableDataset", "default_collate", "get_worker_info"):
    setattr(data, name, type(name, (), {}))
for name in ("torch", "torch.utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["torch.utils.data"] = data
spec = importlib.util.spec_from_file_location("calibrate", Path(__file__).parents[2] / "src/command/calibrate.py")
calibrate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibrate)
