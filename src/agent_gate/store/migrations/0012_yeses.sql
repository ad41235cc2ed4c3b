-- Who said yes already to a question that needs more than one person.
CREATE TABLE yeses (
    approval TEXT NOT NULL,
    person TEXT NOT NULL,
    channel TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (approval, person)
);
