/** Which cloud a cluster is in, by its nodes. */
import type { Node } from '@tenon/api'
import type { ProviderModule } from '@tenon/provider'

/**
 * The provider that knows most nodes: one that manages them comes before one whose instances they are. Undefined when
 * none knows any.
 */
export async function recognizedProvider(
  modules: readonly ProviderModule[],
  nodes: readonly Node[],
): Promise<ProviderModule | undefined> {
  let best: { readonly module: ProviderModule; readonly managed: number; readonly own: number } | undefined
  for (const module of modules) {
    const survey = await module.survey?.()
    if (survey === undefined) continue
    const recognitions = nodes.map((node) => survey.recognizes(node))
    const managed = recognitions.filter((each) => each === 'managed').length
    const own = recognitions.filter((each) => each === 'instance').length
    if (managed + own === 0) continue
    const isBetter =
      best === undefined || managed > best.managed || (managed === best.managed && own > best.own)
    if (isBetter) best = { module, managed, own }
  }
  return best?.module
}
