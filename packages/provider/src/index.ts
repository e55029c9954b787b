export {
  type CloudProvider,
  isProviderError,
  ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
  type RegistrationHook,
  type RegistrationVerdict,
  type RepairPolicy,
} from './contract.ts'
