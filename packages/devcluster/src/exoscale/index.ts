/** The simulated Exoscale cloud. */
export { instanceTypes as exoscaleInstanceTypes, zoneNames as exoscaleZones } from './catalogue.ts'
export { createExoscale, type Exoscale } from './exoscale.ts'
export { pricePerHour as exoscalePricePerHour } from './prices.ts'
export { createDefaultStorageClass } from './storage-class.ts'
export type { ExoscaleSettings } from './settings.ts'
export type { InstanceRecord, KeptInstances } from './kept-instances.ts'
