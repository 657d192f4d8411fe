"""The machine underneath: files, memory, interruptions, HTML. It knows nothing of tables."""
