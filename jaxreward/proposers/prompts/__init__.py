"""What a language model or a person is asked: prompts from templates that users can replace."""
