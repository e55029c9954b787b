/** The page for a team on the real control plane: its tokens, its RBAC, and a stand-in for oauth2-proxy. */
import { after, before, describe, test } from 'node:test'
import { loadKubeConfig } from '@tenon/kube'
import { readText } from '@tenon/runtime'
import {
  aTeam,
  playAttacks,
  playTeam,
  type Team,
} from '../../packages/cli/src/commands/console/team-scenario.test-support.ts'
import { administrator } from './administrator.ts'
import { sharedControlPlane } from './cluster.ts'

describe('the page for a team', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let team: Team | undefined

  before(async () => {
    controlPlane = await sharedControlPlane()
  })

  after(async () => {
    await team?.remove()
    await controlPlane.stop()
  })

  /** As `kubectl auth can-i` asks: the API server, as the user. */
  async function canI(token: string, verb: string, resource: string): Promise<boolean> {
    const config = loadKubeConfig({ kubeconfig: controlPlane.kubeconfigPath, env: {}, token })
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb, resource } },
    }
    const { body } = await config.transport.send({
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify(review),
    })
    const { status } = JSON.parse(await readText(body)) as { readonly status: { readonly allowed: boolean } }
    config.close()
    return status.allowed
  }

  test('PGE-10 each user sees and can do what the API server says, whatever a client or another site sends', async (t) => {
    team = await aTeam(t, {
      kubeconfig: controlPlane.kubeconfigPath,
      admin: await administrator(controlPlane.kubeconfigPath),
    })
    await playTeam(team, canI)
    await playAttacks(team)
  })
})
