module footnote

go 1.26

