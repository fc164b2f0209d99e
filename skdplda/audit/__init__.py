"""Audits: lower bounds on the privacy loss, from attacks, beside what is claimed."""

from skdplda.audit._audit import AuditReport, audit
from skdplda.audit._bounds import epsilon_lower_bound, mu_lower_bound, one_run_lower_bound, one_run_p_value
from skdplda.audit._mechanisms import Finding, mechanism_audits

__all__ = [
    "AuditReport",
    "Finding",
    "audit",
    "epsilon_lower_bound",
    "mechanism_audits",
    "mu_lower_bound",
    "one_run_lower_bound",
    "one_run_p_value",
]
