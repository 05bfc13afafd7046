"""The kernel's contract on made-up inputs (`fixtures.cases`): exact bits, controls, NaN, refusals."""

from regression.contract.gates import GATES, Violation, check, partial_error

__all__ = ["GATES", "Violation", "check", "partial_error"]
