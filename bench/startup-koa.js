/** A minimal Koa server. Its startup time is the reference for this server. */
import Koa from 'koa'

const app = new Koa()
app.use(ctx => {
  ctx.body = { ok: true }
})
app.listen(Number(process.env.PORT))
