export { CatalogueGate, catalogueRecheckMs, type CatalogueVerdict } from './catalogue-gate.ts'
export {
  type CloudProvider,
  isProviderError,
  type NodeDefaults,
  type OfferingRef,
  type PoolRules,
  ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
  type RegistrationHook,
  type RegistrationVerdict,
  type RepairPolicy,
} from './contract.ts'
export { decorated } from './decorated.ts'
export { heldMessage, SweepGuard, type SweepGuardOptions, type SweepRound } from './sweep-guard.ts'
export {
  isProviderSettingError,
  type OfflineCatalogue,
  type OfflineFinding,
  type OfflineTypes,
  type ProviderDependencies,
  type ProviderEnvironment,
  type ProviderModule,
  type ProviderOption,
  ProviderSettingError,
} from './module.ts'
export type {
  GuidedTour,
  ProviderSimulator,
  SimulatedMachine,
  SimulatedProvider,
  SimulationPace,
  SimulationPlace,
} from './simulator.ts'
