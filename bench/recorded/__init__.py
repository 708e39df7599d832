"""Complete answers to small problems, recorded once their independent sources agree, and compared field by field."""
