/** Longest time a scheduling pass holds the event loop before others get their turn, in milliseconds. */
export const sliceMs = 8
