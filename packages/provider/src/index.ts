export {
  type CloudProvider,
  isProviderError,
  type OfferingRef,
  ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
  type RegistrationHook,
  type RegistrationVerdict,
  type RepairPolicy,
} from './contract.ts'
