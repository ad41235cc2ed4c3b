"""Sessions with one server: which revision it speaks (`meeting`), how it is reached (`dial`), and which session serves
which caller (`connections`)."""
