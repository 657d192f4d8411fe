"""Mechanisms: how a budget is spent. Each plans, and yields its steps."""

from private_gsd.mechanisms.adaptive import Adaptive
from private_gsd.mechanisms.aim import AIM
from private_gsd.mechanisms.base import EndedEarlyWarning, Mechanism, Plan, Task
from private_gsd.mechanisms.joint_last import JointLast
from private_gsd.mechanisms.mst import MST
from private_gsd.mechanisms.numbers_first import NumbersFirst
from private_gsd.mechanisms.one_shot import Layered, OneShot
from private_gsd.mechanisms.registry import MECHANISMS, mechanism_of
from private_gsd.mechanisms.strongest_pairs import StrongestPairs

__all__ = [
    "AIM",
    "MECHANISMS",
    "MST",
    "Adaptive",
    "EndedEarlyWarning",
    "JointLast",
    "Layered",
    "Mechanism",
    "NumbersFirst",
    "OneShot",
    "Plan",
    "StrongestPairs",
    "Task",
    "mechanism_of",
]
