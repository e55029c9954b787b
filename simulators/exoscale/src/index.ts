/** The simulated Exoscale cloud. */
export {
  instanceTypes as exoscaleInstanceTypes,
  pricePerHour as exoscalePricePerHour,
} from './zone/catalogue.ts'
export { createExoscale, type Exoscale } from './exoscale.ts'
export { simulator } from './provider-simulator.ts'
export type { ExoscaleSettings } from './settings.ts'
export { type ExoscaleCluster, exoscaleSimulator, type SimulatedZone } from './simulator.ts'
export type { ExoscaleSeed, NodepoolSeed } from './zone/world.ts'
