-- The history of questions is read newest first, page by page.
CREATE INDEX approvals_asked ON approvals (asked_at);
