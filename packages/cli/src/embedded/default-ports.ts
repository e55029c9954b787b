/** Default ports of the embedded cluster. */
export const defaultPorts = { api: 16_443, cloud: 16_080 } as const
