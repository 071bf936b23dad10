"""What waits: promises, purgatories, timers, the scheduler, fetches and writes that are not done yet."""
