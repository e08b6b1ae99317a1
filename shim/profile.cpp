namespace metaldoctor {}
