"""Students: small networks that learned to explain, and the folders they are kept in."""
