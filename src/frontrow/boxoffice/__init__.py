"""The box office: events, seats, holds, payments, tickets. Knows neither the limiter nor the waiting room."""
