import type Koa from 'koa'
import type Provider from 'oidc-provider'
import { SessionNotFound } from 'oidc-provider/lib/helpers/errors.js'
import { readForm } from './form.js'
import type { DemoPages } from './pages.js'
import { paths } from './paths.js'
import { type People, tidyName } from './people.js'
import { splitScope } from './scopes.js'

export interface SignInParts {
  provider: Provider
  people: People
  pages: DemoPages
}

const longestName = 100

/** The page between the authorization request and the way back: who is it, and may the application have what it asks for? */
export function signIn({ provider, people, pages }: SignInParts): Koa.Middleware {
  return async function signIn(ctx, next) {
    if (!ctx.path.startsWith(`${paths.signIn}/`)) return next()
    if (ctx.method !== 'GET' && ctx.method !== 'POST') {
      ctx.set('Allow', 'GET, POST')
      return ctx.throw(405)
    }
    try {
      await answer(ctx)
    } catch (error) {
      if (!(error instanceof SessionNotFound)) throw error
      pages.signInExpired(ctx)
    }
  }

  async function answer(ctx: Koa.Context) {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res)
    const action = `${paths.signIn}/${interaction.uid}`
    // The cookie belongs to this path, so they differ only if somebody made this request by hand.
    if (ctx.path !== action) throw new SessionNotFound('the sign-in belongs to another browser')
    const page = { action, scopes: splitScope(interaction.params.scope) }
    if (ctx.method === 'GET') return pages.signIn(ctx, page)

    const form = await readForm(ctx)
    if (form.has('deny'))
      return goOn(ctx, { error: 'access_denied', error_description: 'The user denied the request.' })

    const typed = form.get('user') ?? ''
    const name = tidyName(typed)
    if (name === '') return pages.signIn(ctx, { ...page, problem: 'Type a name, any name.' })
    if (name.length > longestName) {
      return pages.signIn(ctx, { ...page, typed, problem: `Use ${longestName} characters or fewer.` })
    }
    const { id } = people.signIn(name)
    await leaveOther(ctx, interaction, id)
    return goOn(ctx, { login: { accountId: id } })
  }

  async function goOn(ctx: Koa.Context, result: Parameters<Provider['interactionResult']>[2]) {
    ctx.status = 303
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result))
  }

  // Left alone, oidc-provider would first send the browser through signing out whoever was signed in before, on a page
  // that needs a script. Choosing another user is the same thing said plainly, so the old session ends here.
  async function leaveOther(
    ctx: Koa.Context,
    interaction: Awaited<ReturnType<Provider['interactionDetails']>>,
    id: string
  ) {
    const session = await provider.Session.get(ctx)
    if (session.accountId === undefined || session.accountId === id) return
    await session.destroy()
    interaction.session = undefined
    await interaction.persist()
  }
}
