"""What a language model or a person answered: programs, plans, thoughts and judgements read from text."""
