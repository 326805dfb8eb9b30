"""What request handlers see of the platform, and the services that follow its events."""
