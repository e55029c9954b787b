export { CatalogueGate, catalogueRecheckMs, type CatalogueVerdict } from './catalogue-gate.ts'
export {
  type CloudProvider,
  isProviderError,
  type NodeDefaults,
  type OfferingRef,
  ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
  type RegistrationHook,
  type RegistrationVerdict,
  type RepairPolicy,
} from './contract.ts'
export { heldMessage, SweepGuard, type SweepGuardOptions, type SweepRound } from './sweep-guard.ts'
