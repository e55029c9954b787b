import type { Clock, Random } from '@tenon/runtime'
import { silentLogger } from '@tenon/runtime'
import { InProcessApi } from '/work/main/packages/devcluster/src/apiserver/local-api.ts'
import { Registry } from '/work/main/packages/devcluster/src/apiserver/registry.ts'
import { builtinDefinitions } from '/work/main/packages/devcluster/src/schema/builtin-definitions.ts'
import { Store } from '/work/main/packages/devcluster/src/storage/index.ts'
export function realApi(clock: Clock, random: Random) {
  const defs = typeof builtinDefinitions === 'function' ? (builtinDefinitions as any)() : builtinDefinitions
  const ctx = { clock, random, logger: silentLogger, store: new Store({ clock }), registry: new Registry(defs) }
  return new InProcessApi(ctx, 'kube-controller-manager')
}
