"""Where sealed bytes live on this device."""
