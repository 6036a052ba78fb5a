"""The sanitizer: what is personal leaves the device as stand-ins, and comes back in the reply."""

from memseal.sanitize.detecting import Detector, detector
from memseal.sanitize.model import NameModel, PredictingModel, SpacyModel
from memseal.sanitize.results import Clean
from memseal.sanitize.sanitizer import Sanitizer

__all__ = ["Clean", "Detector", "NameModel", "PredictingModel", "Sanitizer", "SpacyModel", "detector"]
