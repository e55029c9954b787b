/** Compares the API server's clock with the local one, by the `Date` header of a response. */
import { type HttpResponse, readText } from '@tenon/runtime'
import type { Check, CheckOutcome } from '../check.ts'

/** Skew up to this is normal: `Date` has whole seconds, and a response takes time. */
const toleratedMs = 5_000
/** Above this, leases, tokens and signatures fail. */
const harmfulMs = 60_000

export const clockSkew: Check = {
  name: 'clock',
  run: async ({ transport, clock }, signal) => {
    const sentMs = clock.now()
    const response = await transport.send(
      { method: 'GET', path: '/version', headers: { accept: 'application/json' } },
      signal,
    )
    const arrivedMs = clock.now()
    await readText(response.body)
    return judge(response, sentMs, arrivedMs)
  },
}

function judge({ headers }: HttpResponse, sentMs: number, arrivedMs: number): CheckOutcome {
  const serverMs = Date.parse(headers['date'] ?? '')
  if (Number.isNaN(serverMs))
    return {
      summary: '',
      findings: [
        {
          status: 'warn',
          message: 'answers of the API server have no Date',
          fix: 'compare the clocks of the control plane, of this computer and of the nodes by hand',
        },
      ],
    }
  // The response was created between the two, at any time in the second that it names.
  const skewMs = serverMs + 999 < sentMs ? serverMs + 999 - sentMs : Math.max(0, serverMs - arrivedMs)
  if (Math.abs(skewMs) <= toleratedMs)
    return { summary: 'the clocks of the API server and of this computer agree', findings: [] }
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  return {
    summary: '',
    findings: [
      {
        status: Math.abs(skewMs) > harmfulMs ? 'fail' : 'warn',
        message: `the clock of the API server is ${seconds} s ${skewMs < 0 ? 'behind' : 'ahead of'} the one of this computer`,
        fix: 'set the clocks by NTP (chrony or systemd-timesyncd), on the control plane and here',
      },
    ],
  }
}
