"""Do the numbers of whole imported networks agree? ``python -m bench.agreement``. See bench/README.md."""
