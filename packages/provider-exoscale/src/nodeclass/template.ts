/** Resolves a node class to the template id of its instances. */
import type { KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import type { ExoscaleNodeClassSpec } from './types.ts'

const variants: readonly string[] = ['standard', 'nvidia']
const rememberMs = 60_000

/** Resolves templates: by id, or by Kubernetes version and variant. */
export class TemplateResolver {
  readonly #api: Pick<ExoscaleClient, 'getActiveNodepoolTemplate'>
  readonly #kube: Pick<KubeClient, 'serverVersion'>
  readonly #clock: Clock
  readonly #remembered = new Map<string, { readonly id: string; readonly untilMs: number }>()
  #version: { readonly text: string; readonly untilMs: number } | undefined

  constructor(deps: {
    readonly api: Pick<ExoscaleClient, 'getActiveNodepoolTemplate'>
    readonly kube: Pick<KubeClient, 'serverVersion'>
    readonly clock: Clock
  }) {
    this.#api = deps.api
    this.#kube = deps.kube
    this.#clock = deps.clock
  }

  /** The current template. Rejects with a sentence for the user. */
  async resolve(spec: ExoscaleNodeClassSpec, signal?: AbortSignal): Promise<string> {
    if (spec.templateID !== undefined && spec.templateID !== '') return spec.templateID
    const selector = spec.imageTemplateSelector
    if (selector === undefined) throw new Error('neither templateID nor imageTemplateSelector is set')
    return await this.#active(selector, selector.version ?? (await this.#controlPlaneVersion()), signal)
  }

  /** Like {@link resolve}, but cached for a minute, for checks of many instances of one node class. */
  async resolveRecent(spec: ExoscaleNodeClassSpec, signal?: AbortSignal): Promise<string> {
    const { templateID, imageTemplateSelector: selector } = spec
    if (templateID !== undefined || selector === undefined) return this.resolve(spec, signal)
    const version = selector.version ?? (await this.#recentVersion())
    const known = this.#remembered.get(`${version}/${selector.variant ?? 'standard'}`)
    if (known !== undefined && known.untilMs > this.#clock.monotonic()) return known.id
    return await this.#active(selector, version, signal)
  }

  async #active(
    selector: NonNullable<ExoscaleNodeClassSpec['imageTemplateSelector']>,
    version: string,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const variant = selector.variant ?? 'standard'
    if (!variants.includes(variant)) {
      throw new Error(`imageTemplateSelector.variant "${variant}" is not one of ${variants.join(', ')}`)
    }
    const id = await this.#api.getActiveNodepoolTemplate(version, variant, signal)
    this.#remembered.set(`${version}/${variant}`, { id, untilMs: this.#clock.monotonic() + rememberMs })
    return id
  }

  async #recentVersion(): Promise<string> {
    if (this.#version !== undefined && this.#version.untilMs > this.#clock.monotonic())
      return this.#version.text
    return await this.#controlPlaneVersion()
  }

  async #controlPlaneVersion(): Promise<string> {
    const gitVersion = await this.#kube.serverVersion()
    const version = /^v?(\d+\.\d+\.\d+)/.exec(gitVersion)?.[1]
    if (version === undefined)
      throw new Error(`the control plane's version "${gitVersion}" is not understood`)
    this.#version = { text: version, untilMs: this.#clock.monotonic() + rememberMs }
    return version
  }
}
