/** Where the embedded cluster listens unless it is told otherwise. */
export const defaultPorts = { api: 16_443, cloud: 16_080 } as const
