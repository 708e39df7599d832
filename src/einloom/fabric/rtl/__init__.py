"""The fabric as hardware, in Amaranth (the extra ``rtl``): imported only when a verb needs it."""
