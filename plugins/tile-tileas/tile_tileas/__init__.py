"""The nv_tileas dialect: layouts, schedules and materialised data movement."""
