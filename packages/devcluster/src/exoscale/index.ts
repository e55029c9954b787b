/** The simulated Exoscale cloud. */
export { createExoscale, type Exoscale } from './exoscale.ts'
export type { ExoscaleSettings } from './settings.ts'
