"""Fans, staff and teams: sessions, sign-in, passwords, limits and account mails."""
