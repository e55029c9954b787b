import type { OfflineCatalogue, ProviderModule } from '@tenon/provider'

/** A provider, and what it knows without access to its cloud. */
export interface OfflineProvider {
  readonly module: ProviderModule
  readonly catalogue: OfflineCatalogue
}

export function serves(
  { module }: OfflineProvider,
  { group, kind }: { readonly group: string; readonly kind: string },
): boolean {
  return module.nodeClasses.some((own) => own.group === group && own.kind === kind)
}
