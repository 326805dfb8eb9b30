"""The owner's side of a waiting room that is served alone: owners, rooms, schedules, rules, design, figures, keys."""
