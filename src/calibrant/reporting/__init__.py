"""Reports: what was found about one or several models, on one page that needs nothing else."""

from calibrant.reporting.html_page import Page, page, report, write_page

__all__ = ["Page", "page", "report", "write_page"]
