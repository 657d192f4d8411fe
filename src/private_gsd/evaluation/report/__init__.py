"""Reports: the release report, to be published, and the evaluation report, confidential."""
