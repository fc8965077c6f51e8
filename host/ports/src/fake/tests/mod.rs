mod guests;
mod store;
