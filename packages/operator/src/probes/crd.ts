/** Whether the API server serves NodePools and NodeClaims (operations.md 5). */
import { apiVersionOf, karpenterKinds } from '@tenon/api'
import { readText, type Transport } from '@tenon/runtime'

const needed = [karpenterKinds.nodeClaim, karpenterKinds.nodePool]
const fix = 'install the CustomResourceDefinitions: tenon crds | kubectl apply --server-side -f -'

/** Asks by discovery; answers what is missing, or why the server does not tell. */
export async function crdProblem(transport: Transport, signal?: AbortSignal): Promise<string | undefined> {
  const version = apiVersionOf(karpenterKinds.nodePool)
  const request = { method: 'GET', path: `/apis/${version}`, headers: { accept: 'application/json' } }
  try {
    const { status, body } = await transport.send(request, signal)
    const text = await readText(body)
    if (status !== 200 && status !== 404) return `GET /apis/${version}: the server answered ${status}`
    const served = status === 200 ? namesOf(text) : []
    const missing = needed.map(({ plural }) => plural).filter((plural) => !served.includes(plural))
    return missing.length === 0 ? undefined : `${version} serves no ${missing.join(' and ')}; ${fix}`
  } catch (error) {
    return `GET /apis/${version}: ${error instanceof Error ? error.message : String(error)}`
  }
}

function namesOf(text: string): readonly string[] {
  const { resources = [] } = JSON.parse(text) as { resources?: readonly { readonly name: string }[] }
  return resources.map(({ name }) => name)
}
