export {
  type CloudProvider,
  isProviderError,
  ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
  type RepairPolicy,
} from './contract.ts'
