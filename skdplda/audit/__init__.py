"""Audits: lower bounds on the privacy loss, from attacks, beside what is claimed."""

from skdplda.audit._audit import AuditReport, audit, quick_audit
from skdplda.audit._bounds import epsilon_lower_bound, one_run_lower_bound
from skdplda.audit._mechanisms import Finding, mechanism_audits
from skdplda.audit._one_fit import AttackLine, OneFitReport, audit_one_fit

__all__ = [
    "AttackLine",
    "AuditReport",
    "Finding",
    "OneFitReport",
    "audit",
    "audit_one_fit",
    "epsilon_lower_bound",
    "mechanism_audits",
    "one_run_lower_bound",
    "quick_audit",
]
