/** Waits are as long as a quiet host needs; a busy one needs a few times that. */
export const patience = 3
