// The records of one run are one table, which has the places itself: no ranking over tables.

SECTIONS.splice(SECTIONS.indexOf("ranking"), 1);
state.section = "results";
byId("sections").querySelector('a[href="#ranking"]').remove();
