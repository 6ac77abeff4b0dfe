"""People as proposers and judges: requests as files in the folder of a run, answers too."""
