"""Tables and figures of papers, run again cell by cell, with the published figures beside."""
