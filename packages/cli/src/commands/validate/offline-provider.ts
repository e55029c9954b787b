import type { OfflineCatalogue, ProviderModule } from '@tenon/provider'

/** A provider, and what it knows without its cloud. */
export interface OfflineProvider {
  readonly module: ProviderModule
  readonly catalogue: OfflineCatalogue
}

/** Whether a provider serves node classes of a kind. */
export function serves(
  { module }: OfflineProvider,
  { group, kind }: { readonly group: string; readonly kind: string },
): boolean {
  return module.nodeClasses.some((own) => own.group === group && own.kind === kind)
}
